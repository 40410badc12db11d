# Debian packages, by `cpack` in a build that was configured for /usr: mrcd, libmrc0, libmrc-dev, mrc-tools.
#
# What is installed from a directory goes into the package of its default component, so that nothing
# which is added later is forgotten. The rest of what Debian wants is in this directory: scripts
# for dpkg, copyright, changelog, and stage.cmake, which finishes each package's files.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
	return() # units, pkg-config and such name the place that was configured
endif()

set(MRC_PACKAGE_MAINTAINER "" CACHE STRING "who makes Debian packages: Name <address>; else as git knows it")
set(maintainer "${MRC_PACKAGE_MAINTAINER}")
if(maintainer STREQUAL "")
	set(maintainer "Unknown maintainer <root@localhost>")
	execute_process(COMMAND git config user.name WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
		OUTPUT_VARIABLE name OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	execute_process(COMMAND git config user.email WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
		OUTPUT_VARIABLE address OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	if(name AND address)
		set(maintainer "${name} <${address}>")
	endif()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mrcd)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
# What a debugger wants goes into packages of its own (NAME-dbgsym), if there is any. CPack names files by their
# places in the build in their md5sums, which nothing but dpkg --verify reads.
set(CPACK_STRIP_FILES OFF)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_DEVELOPMENT_DEBUGINFO_PACKAGE OFF)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
	WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/stage.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL daemon runtime development tools)
set(CPACK_COMPONENTS_GROUPING IGNORE)

# mrc_package(COMPONENT NAME SECTION DESCRIPTION)
macro(mrc_package component name section description)
	string(TOUPPER ${component} upper)
	set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
	set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
	set(CPACK_DEBIAN_${upper}_DESCRIPTION "${description}")
	if(NOT "${name}" STREQUAL mrcd)
		set(CPACK_DEBIAN_${upper}_PACKAGE_SOURCE mrcd)
	endif()
endmacro()

# The first line is the summary.
set(common "
Multipath Reliable Connection over ordinary network ports: one daemon per host
joins hosts by several ports at once, over TCP or RDMA, and carries messages
of programs. A port that dies is not noticed by them, and every sender is told
truly how far its message got.

This package has")
set(what "multipath reliable connections between hosts")
mrc_package(daemon mrcd net "${what}, daemon${common} the daemon.")
mrc_package(runtime libmrc0 libs "${what}, library${common} the library that programs link.")
mrc_package(development libmrc-dev libdevel "${what}, development${common} what programs are built with: headers, the static
library, pkg-config and CMake files, and the manual pages of the calls.")
mrc_package(tools mrc-tools net "${what}, tools${common} mrcctl, which looks into a daemon and takes ports
out of service, and mrc-perf, which measures.")

set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
# The user and the directory are made by systemd's tools, also where another program is the first process.
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS
	"systemd | systemd-standalone-sysusers | systemd-sysusers, systemd | systemd-standalone-tmpfiles | systemd-tmpfiles")
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS "mrc-tools")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libmrc0 (= ${version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "mrcd")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "gnuplot-nox")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libmrc0 (= ${version})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)

set(made ${CMAKE_CURRENT_BINARY_DIR}/debian)
configure_file(${CMAKE_CURRENT_LIST_DIR}/shlibs.in ${made}/shlibs @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/changelog.in ${made}/changelog @ONLY)
configure_file(${CMAKE_CURRENT_LIST_DIR}/libmrc0.symbols ${made}/symbols COPYONLY)
set(scripts ${CMAKE_CURRENT_LIST_DIR})
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm ${scripts}/conffiles)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${made}/shlibs ${made}/symbols ${scripts}/triggers)
set(CPACK_MRC_SOURCE_DIR ${PROJECT_SOURCE_DIR})
set(CPACK_MRC_MADE_DIR ${made})
include(CPack)
