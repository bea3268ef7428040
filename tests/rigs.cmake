# Tests that run inside a guest: a small kernel with ublk that is built when it is first needed (tests/rigs/kernel).
# Labels: rigs (uml; part of CI) and rigs_long (all others: the x86 kernel alone takes ten minutes to build).
set(RIGS_DIR ${CMAKE_CURRENT_SOURCE_DIR}/rigs)

#   folioswap_rig_label(VARIABLE RIG)
function(folioswap_rig_label variable rig)
  if(rig STREQUAL uml)
    set(${variable} rigs PARENT_SCOPE)
  else()
    set(${variable} rigs_long PARENT_SCOPE)
  endif()
endfunction()

#   folioswap_rig(RIG): its kernel, and the trial of the rig itself; another kernel for the same rig needs no trial
function(folioswap_rig rig)
  folioswap_rig_label(label ${rig})
  add_test(NAME rig_${rig}_kernel COMMAND ${RIGS_DIR}/kernel ${rig})
  set_tests_properties(rig_${rig}_kernel PROPERTIES LABELS ${label} TIMEOUT 3600
    RESOURCE_LOCK rig FIXTURES_SETUP rig_${rig})
  if(rig STREQUAL uml-6.1)
    return()
  endif()
  add_test(NAME rig_${rig}_selftest COMMAND ${RIGS_DIR}/selftest.sh ${rig})
  set_tests_properties(rig_${rig}_selftest PROPERTIES LABELS ${label} TIMEOUT 1800
    RESOURCE_LOCK rig FIXTURES_REQUIRED rig_${rig})
endfunction()

#   folioswap_rig_test(NAME [SCRIPT name] [RIG rig] [TIMEOUT seconds] [LONG_TIMEOUT seconds] [OPTIONS option ...]
#     [ARGUMENTS word ...]): tests/rigs/SCRIPT.sh, or NAME.sh, as root in a guest of the rig (uml, the default;
#     uml+debug, x86, x86+debug, uml-6.1) that is killed after TIMEOUT (300), or LONG_TIMEOUT (3600) with FOLIOSWAP_LONG.
#     Exit status 77 is a skip. Its results and the kernel's console stay in rigs/NAME of the build folder.
function(folioswap_rig_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SCRIPT;RIG;TIMEOUT;LONG_TIMEOUT" "OPTIONS;ARGUMENTS")
  foreach(default SCRIPT=${name} RIG=uml TIMEOUT=300 LONG_TIMEOUT=3600)
    string(REPLACE = ";" default ${default})
    list(POP_FRONT default variable)
    if(NOT arg_${variable})
      set(arg_${variable} ${default})
    endif()
  endforeach()
  set(program ${arg_RIG})
  if(program MATCHES "^(.*)[+]debug$")
    set(program ${CMAKE_MATCH_1} --debug)
  elseif(program STREQUAL uml-6.1)
    set(program uml --old)
  endif()
  folioswap_rig_label(label ${arg_RIG})
  math(EXPR test_timeout "${arg_LONG_TIMEOUT} + 60")
  add_test(NAME ${name} COMMAND ${RIGS_DIR}/${program} --timeout ${arg_TIMEOUT} --long-timeout ${arg_LONG_TIMEOUT}
    --results ${CMAKE_BINARY_DIR}/rigs/${name} ${arg_OPTIONS} ${RIGS_DIR}/${arg_SCRIPT}.sh ${arg_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT ${test_timeout}
    RESOURCE_LOCK rig FIXTURES_REQUIRED rig_${arg_RIG} ENVIRONMENT FOLIOSWAP_BUILD=${CMAKE_BINARY_DIR})
endfunction()

folioswap_rig(uml)
folioswap_rig(uml+debug)
folioswap_rig(x86)
folioswap_rig(uml-6.1)

folioswap_rig_test(ublk_io OPTIONS --mem 2G)
folioswap_rig_test(ublk_swap)
folioswap_rig_test(ublk_churn)
folioswap_rig_test(ublk_dead)
folioswap_rig_test(ublk_takeover TIMEOUT 400 OPTIONS --mem 2G)
folioswap_rig_test(ublk_upgrade TIMEOUT 400 OPTIONS --mem 2G)
folioswap_rig_test(bench_zram ARGUMENTS --quick OPTIONS --mem 2G)
folioswap_rig_test(ublk_grow TIMEOUT 400 OPTIONS --mem 2G)
folioswap_rig_test(ublk_storm SCRIPT storm ARGUMENTS ublk LONG_TIMEOUT 1200 OPTIONS --mem 192M)
folioswap_rig_test(ublk_storm_kill SCRIPT storm ARGUMENTS ublk kill LONG_TIMEOUT 1200 OPTIONS --mem 192M)
folioswap_rig_test(fuse_storm SCRIPT storm ARGUMENTS fuse LONG_TIMEOUT 1200 OPTIONS --mem 192M --sysctl vm.min_free_kbytes=16384)
# The oldest kernel: no USER_COPY, no standby. Its system calls are slow: as short as in CI.
foreach(script swap dead churn)
  folioswap_rig_test(ublk_${script}_6.1 SCRIPT ublk_${script} RIG uml-6.1 TIMEOUT 600)
  set_tests_properties(ublk_${script}_6.1 PROPERTIES ENVIRONMENT "FOLIOSWAP_BUILD=${CMAKE_BINARY_DIR};FOLIOSWAP_LONG=")
endforeach()
# The kernel's own tests of the driver, with folioswap as its server; and storms that must not pass.
folioswap_rig_test(ublk_selftests TIMEOUT 1800 OPTIONS --mem 2G --env FOLIOSWAP_RIG_CACHE --env FOLIOSWAP_KERNEL_TREE)
foreach(variant unlocked no-reserve fuse)
  add_test(NAME storm_${variant} COMMAND ${RIGS_DIR}/storm_must_fail.sh ${variant})
  set_tests_properties(storm_${variant} PROPERTIES TIMEOUT 600 RESOURCE_LOCK rig FIXTURES_REQUIRED rig_uml
    ENVIRONMENT FOLIOSWAP_BUILD=${CMAKE_BINARY_DIR})
endforeach()
folioswap_rig_test(storm_control SCRIPT storm ARGUMENTS ublk OPTIONS --mem 192M --env FOLIOSWAP_STORM_MIB
  --env FOLIOSWAP_STORM_SECONDS)
set_tests_properties(storm_control PROPERTIES
  ENVIRONMENT "FOLIOSWAP_BUILD=${CMAKE_BINARY_DIR};FOLIOSWAP_STORM_MIB=46;FOLIOSWAP_STORM_SECONDS=60")
set_tests_properties(ublk_selftests storm_control storm_unlocked storm_no-reserve storm_fuse PROPERTIES LABELS rigs_long)
