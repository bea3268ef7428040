# Tests of the command line tool.
folioswap_unit_test(cli_test cli)
folioswap_unit_test(cli_output_test cli)
folioswap_unit_test(cli_metrics_test cli)
folioswap_unit_test(doctor_test cli)

# End to end, each in a mount namespace of its own, never beside the daemon's.
#   folioswap_cli_test(NAME): tests/e2e/NAME.sh
function(folioswap_cli_test name)
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/e2e/${name}.sh)
  set_tests_properties(${name} PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 400
    RESOURCE_LOCK loop_devices ENVIRONMENT FOLIOSWAP_BUILD=${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
endfunction()

folioswap_cli_test(cli_bad_input)
folioswap_cli_test(cli_round_trip)
folioswap_cli_test(cli_many)
folioswap_cli_test(cli_del_during_add)
folioswap_cli_test(cli_watcher)
folioswap_cli_test(cli_swap)
folioswap_cli_test(cli_upgrade)
