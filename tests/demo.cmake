# tools/bench_zram: its formulas and its table, and the program that moves the bytes. A short run of it all is a rig's.
add_test(NAME bench_zram_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/unit/bench_zram_test.py)
set_tests_properties(bench_zram_test PROPERTIES LABELS unit TIMEOUT 300
  ENVIRONMENT FOLIOSWAP_BUILD=${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
# tools/demo: its formulas and its table, and a short run of it all.
add_test(NAME demo_report_test COMMAND ${CMAKE_CURRENT_LIST_DIR}/unit/demo_report_test.py)
set_tests_properties(demo_report_test PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 60)
add_test(NAME demo COMMAND ${CMAKE_CURRENT_LIST_DIR}/e2e/demo.sh)
set_tests_properties(demo PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 1200
  RESOURCE_LOCK loop_devices ENVIRONMENT FOLIOSWAP_BUILD=${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
