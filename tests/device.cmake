# The device, the replay and the transport table stand on sources, not on their
# libraries: the tests bring a store and a FUSE backend of their own.
folioswap_unit_test(device_test stats base)
target_sources(device_test PRIVATE unit/fake_store.c
  ${PROJECT_SOURCE_DIR}/swapdev/device/device.c ${PROJECT_SOURCE_DIR}/swapdev/device/split.c ${PROJECT_SOURCE_DIR}/swapdev/device/inflight.c)
target_include_directories(device_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/device
  ${PROJECT_SOURCE_DIR}/include/device ${PROJECT_SOURCE_DIR}/include/store)

folioswap_unit_test(split_test base)
target_sources(split_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/device/split.c)
target_include_directories(split_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/device)

folioswap_unit_test(replay_test stats base)
target_sources(replay_test PRIVATE unit/fake_store.c
  ${PROJECT_SOURCE_DIR}/swapdev/device/device.c ${PROJECT_SOURCE_DIR}/swapdev/device/split.c ${PROJECT_SOURCE_DIR}/swapdev/device/inflight.c
  ${PROJECT_SOURCE_DIR}/swapdev/transport/replay.c ${PROJECT_SOURCE_DIR}/swapdev/transport/contents.c
  ${PROJECT_SOURCE_DIR}/swapdev/transport/trace.c ${PROJECT_SOURCE_DIR}/swapdev/transport/fault.c)
target_include_directories(replay_test PRIVATE ${PROJECT_SOURCE_DIR}/include/device
  ${PROJECT_SOURCE_DIR}/include/store ${PROJECT_SOURCE_DIR}/include/transport)

folioswap_unit_test(trace_test base)
target_sources(trace_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/transport/trace.c)
target_include_directories(trace_test PRIVATE ${PROJECT_SOURCE_DIR}/include/device
  ${PROJECT_SOURCE_DIR}/include/transport)

folioswap_unit_test(contents_test base)
target_sources(contents_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/transport/contents.c)
target_include_directories(contents_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/transport)

folioswap_unit_test(transport_test)
target_sources(transport_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/transport/transport.c)
target_include_directories(transport_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/transport
  ${PROJECT_SOURCE_DIR}/include/transport)

folioswap_unit_test(fault_test base)
target_sources(fault_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/transport/fault.c)
target_include_directories(fault_test PRIVATE ${PROJECT_SOURCE_DIR}/include/device
  ${PROJECT_SOURCE_DIR}/include/transport)

# Replay over the real store, and the request stream as a fuzz target.
folioswap_unit_test(replay_store_test transport device store compress stats base)
folioswap_fuzz_test(request_fuzz device store compress stats base)

folioswap_unit_test(ublk_test ublkdev base)
target_sources(ublk_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/transport/ublk_plan.c)
target_include_directories(ublk_test PRIVATE ${PROJECT_SOURCE_DIR}/swapdev/transport
  ${PROJECT_SOURCE_DIR}/include/transport)
