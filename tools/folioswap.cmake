# The command line tool: everything but main() in a library, so that tests link it.
pkg_check_modules(SMARTCOLS REQUIRED IMPORTED_TARGET smartcols)

set(CLI_SOURCES
  cli_options.c cli_value.c cli_process.c cli_swap.c cli_device.c cli_stop.c cli_table.c
  figures.c view.c fields.c openmetrics.c
  cmd_add.c add_config.c add_daemon.c daemon_binary.c cmd_list.c cmd_stat.c stat_print.c stat_orders.c stat_watch.c
  cmd_set.c cmd_compact.c cmd_upgrade.c cmd_del.c cmd_doctor.c doctor_host.c doctor_kernel.c doctor_ublk.c doctor_takeover.c doctor_memory.c doctor_devices.c)
list(TRANSFORM CLI_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
add_library(cli STATIC ${CLI_SOURCES})
target_include_directories(cli PUBLIC ${CMAKE_CURRENT_LIST_DIR})
# For the names of the transports alone; what they need (libfuse) is the daemon's.
target_include_directories(cli PRIVATE ${PROJECT_SOURCE_DIR}/include/transport)
target_link_libraries(cli PUBLIC compress stats control ublkdev base PkgConfig::SMARTCOLS m)

add_executable(folioswap ${CMAKE_CURRENT_LIST_DIR}/folioswap.c)
target_link_libraries(folioswap PRIVATE cli)
install(TARGETS folioswap RUNTIME DESTINATION sbin)

install(FILES ${CMAKE_CURRENT_LIST_DIR}/folioswap.bash-completion
  DESTINATION share/bash-completion/completions RENAME folioswap)

find_program(SCDOC scdoc)
if(SCDOC)
  add_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/folioswap.8
    COMMAND ${SCDOC} < ${CMAKE_CURRENT_LIST_DIR}/folioswap.8.scd > ${CMAKE_CURRENT_BINARY_DIR}/folioswap.8
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/folioswap.8.scd)
  add_custom_target(folioswap_man ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/folioswap.8)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/folioswap.8 DESTINATION share/man/man8)
endif()
