# The daemon's parts stand on their sources: they are no library.
set(DAEMON_DIR ${PROJECT_SOURCE_DIR}/swapdev)

folioswap_unit_test(host_test base)
folioswap_unit_test(schedule_test base)

folioswap_unit_test(control_test control base)
target_include_directories(control_test PRIVATE ${DAEMON_DIR}/control)

folioswap_unit_test(resident_test control base)
target_sources(resident_test PRIVATE ${DAEMON_DIR}/resident.c ${DAEMON_DIR}/imagefile.c)
target_include_directories(resident_test PRIVATE ${DAEMON_DIR})

# Needs root and loop devices; skips itself without.
folioswap_unit_test(loopdev_test base)
target_sources(loopdev_test PRIVATE ${DAEMON_DIR}/transport/loopdev.c)
target_include_directories(loopdev_test PRIVATE ${DAEMON_DIR}/transport)
set_tests_properties(loopdev_test PROPERTIES RESOURCE_LOCK loop_devices)

add_executable(storm_check e2e/storm_check.c)
add_executable(rewrite_check e2e/rewrite_check.c)
target_link_libraries(rewrite_check PRIVATE Threads::Threads)

# Two daemons that take over in the wrong order: the tests of take-over must see it.
function(folioswap_broken_daemon name definition)
  get_target_property(sources folioswapd SOURCES)
  list(TRANSFORM sources PREPEND ${DAEMON_DIR}/)
  add_executable(${name} ${sources} ${DAEMON_DIR}/transport/fuse_session.c)
  target_include_directories(${name} PRIVATE ${DAEMON_DIR} ${DAEMON_DIR}/transport)
  target_compile_definitions(${name} PRIVATE ${definition})
  target_link_libraries(${name} PRIVATE transport device store stats control compress base PkgConfig::FUSE3 Threads::Threads)
endfunction()
find_package(PkgConfig REQUIRED)
pkg_check_modules(FUSE3 REQUIRED IMPORTED_TARGET fuse3)
folioswap_broken_daemon(folioswapd_resend_late FOLIOSWAP_BREAK_RESEND_LATE)
folioswap_broken_daemon(folioswapd_no_reap FOLIOSWAP_BREAK_NO_REAP)

add_executable(control_probe e2e/control_probe.c)
target_link_libraries(control_probe PRIVATE control stats base)

#   folioswap_daemon_test(NAME): tests/e2e/NAME.sh with the built programs
function(folioswap_daemon_test name)
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/e2e/${name}.sh)
  set_tests_properties(${name} PROPERTIES LABELS e2e SKIP_RETURN_CODE 77 TIMEOUT 900
    RESOURCE_LOCK loop_devices ENVIRONMENT FOLIOSWAP_BUILD=${CMAKE_BINARY_DIR})
endfunction()

folioswap_daemon_test(daemon_options)
folioswap_daemon_test(daemon_unsafe)
folioswap_daemon_test(daemon_start_stop)
folioswap_daemon_test(daemon_kill)
folioswap_daemon_test(daemon_takeover)
folioswap_daemon_test(daemon_takeover_steps)
folioswap_daemon_test(daemon_takeover_order)
folioswap_daemon_test(daemon_giving_up)
folioswap_daemon_test(daemon_terminal)
folioswap_daemon_test(daemon_kill_early)
folioswap_daemon_test(daemon_two)
folioswap_daemon_test(daemon_swap)
folioswap_daemon_test(daemon_pressure)
folioswap_daemon_test(daemon_control)
folioswap_daemon_test(daemon_fio)
folioswap_daemon_test(daemon_discard)
folioswap_daemon_test(daemon_fault)
folioswap_daemon_test(daemon_fault_swap)
folioswap_daemon_test(daemon_sparse)
