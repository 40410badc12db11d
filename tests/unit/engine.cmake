# The tests of the engine and of what the build promises about proto/; included by CMakeLists.txt here.
if(MRC_SANITIZE STREQUAL "thread")
	return() # the engine has one thread
endif()
add_custom_target(engine_tests)
foreach(noun wire about hello limits range histogram rtt path channel ctl conn conn_along conn_answers conn_breach conn_clients
		conn_change conn_host conn_info conn_mended conn_paths conn_state conn_state_limits conn_state_refused want void cancel
		space share resend convict note health)
	if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/test_${noun}.c)
		mrc_unit_test(${noun} mrc_proto)
		set_tests_properties(unit.${noun} PROPERTIES LABELS engine)
		add_dependencies(engine_tests test_${noun})
	endif()
endforeach()
target_compile_definitions(test_wire PRIVATE MRC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_compile_definitions(test_conn_state PRIVATE MRC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

add_test(NAME unit.proto_symbols
	COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/proto_symbols.sh $<TARGET_FILE:mrc_proto>)

# Where the headers of daemon/'s libraries are.
set(header_flags)
foreach(module libevent yaml-0.1 libsystemd jansson libcrypto)
	execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --cflags ${module}
		OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE)
	list(APPEND header_flags ${flags})
endforeach()
list(JOIN header_flags " " header_flags)
add_test(NAME unit.headers_alone
	COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/headers_alone.sh ${PROJECT_SOURCE_DIR}
	${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
set_tests_properties(unit.headers_alone PROPERTIES ENVIRONMENT "CFLAGS=${header_flags}")
