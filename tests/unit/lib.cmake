# The tests of libmrc; included by CMakeLists.txt here.
mrc_unit_test(look mrc_inside)
mrc_unit_test(lib_ring mrc_inside)
mrc_unit_test(lib_buf mrc_inside)
mrc_unit_test(lib_client mrc_static)
mrc_unit_test(lib_breach mrc_static)
mrc_unit_test(lib_drain mrc_static)
mrc_unit_test(lib_outcome mrc_static)
mrc_unit_test(lib_unlistened mrc_static)
mrc_unit_test(lib_wait mrc_static)

add_test(NAME unit.lib_symbols
	COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/test_lib_symbols.sh $<TARGET_FILE:mrc>
	${PROJECT_SOURCE_DIR}/lib/libmrc.map ${PROJECT_SOURCE_DIR}/lib/include/mrc/client.h)

include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
	enable_language(CXX)
	add_executable(test_lib_cxx test_lib_cxx.cc)
	target_compile_options(test_lib_cxx PRIVATE -std=c++11 -Wall -Wextra -Wpedantic -Werror)
	target_link_libraries(test_lib_cxx PRIVATE mrc)
	add_test(NAME unit.lib_cxx COMMAND test_lib_cxx)
endif()
