folioswap_unit_test(codec_test compress base)
folioswap_unit_test(codec_damage_test compress base)
folioswap_unit_test(codec_object_test compress base)
# A map that fails, and the proof that a run maps nothing and a destroy leaves nothing.
target_link_options(codec_object_test PRIVATE -Wl,--wrap=mmap,--wrap=munmap)

folioswap_fuzz_test(codec_fuzz compress base)
folioswap_fuzz_test(damage_fuzz compress base)
