# The tests of rails over RDMA devices; included by CMakeLists.txt here. They link devices in memory
# (verbs_fake.h) and not the libraries of the real ones: a call the fake does not know fails to link.
pkg_check_modules(EVENT REQUIRED IMPORTED_TARGET libevent_core libevent_extra)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
find_package(Threads REQUIRED)

add_library(verbs_fake STATIC verbs_fake.c verbs_fake_qp.c verbs_fake_cm.c)
target_include_directories(verbs_fake PUBLIC $<TARGET_PROPERTY:mrcd_core,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(verbs_fake PRIVATE mrc_flags PUBLIC Threads::Threads)

foreach(noun link data device engine)
	add_executable(test_verbs_${noun} test_verbs_${noun}.c)
	add_dependencies(test_verbs_${noun} mrcd_core)
	target_include_directories(test_verbs_${noun}
		PRIVATE $<TARGET_PROPERTY:mrcd_core,INTERFACE_INCLUDE_DIRECTORIES>)
	target_link_libraries(test_verbs_${noun} PRIVATE mrc_flags $<TARGET_FILE:mrcd_core> mrcd_status_page verbs_fake
		mrc_proto mrc_abi PkgConfig::EVENT PkgConfig::YAML PkgConfig::SYSTEMD PkgConfig::JANSSON
		PkgConfig::CRYPTO PkgConfig::CMOCKA Threads::Threads ${ISAL_LIBRARY})
	add_test(NAME unit.verbs_${noun} COMMAND test_verbs_${noun})
	set_tests_properties(unit.verbs_${noun} PROPERTIES LABELS verbs TIMEOUT 180)
endforeach()
target_link_options(test_verbs_engine PRIVATE LINKER:--wrap=mrcd_client_side_perform
	LINKER:--wrap=mrcd_landing_memory LINKER:--wrap=mrcd_send_memory LINKER:--wrap=mrcd_send_region)
