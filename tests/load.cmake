# swapload: its contents and its verifier; then whole runs, without root and whether or not swap is on.
pkg_check_modules(LOAD_CODECS REQUIRED IMPORTED_TARGET libzstd liblz4)
folioswap_unit_test(load_test load base PkgConfig::LOAD_CODECS)
folioswap_unit_test(load_run_test load base)
folioswap_unit_test(load_heap_test load base)
folioswap_unit_test(load_thp_test load base)
folioswap_daemon_test(load_pageout)
