# The store's tests look inside: they include its private headers.
#   folioswap_store_test(NAME): tests/unit/NAME.c
function(folioswap_store_test name)
  folioswap_unit_test(${name} store compress stats base)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/store)
endfunction()

folioswap_unit_test(store_model_test store compress stats base)
folioswap_store_test(pool_test)
folioswap_store_test(pool_arena_test)
folioswap_store_test(ids_test)
folioswap_store_test(frame_test)
folioswap_store_test(image_test)
folioswap_store_test(store_crash_test)
folioswap_store_test(store_damage_test)
folioswap_store_test(record_damage_test)
folioswap_store_test(limit_test)
folioswap_store_test(store_threads_test)

folioswap_fuzz_test(image_fuzz store compress stats base)
if(TARGET image_fuzz)
  target_include_directories(image_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/store)
endif()
