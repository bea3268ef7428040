# swapload: the workloads are a library, so that the unit test can have their parts.
add_library(load STATIC
  load_capture.c load_cgroup.c load_content.c load_counters.c load_generate.c load_heap.c load_heap_kinds.c
  load_hierarchy.c load_hold.c load_options.c load_pageout.c load_random.c load_report.c load_report_json.c
  load_report_text.c load_run.c load_seq.c load_shmem.c load_stop.c load_thp.c load_usemem.c load_worker.c)
target_include_directories(load PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(load PUBLIC base)

add_executable(swapload swapload.c)
target_link_libraries(swapload PRIVATE load)
