// SPDX-License-Identifier: BSD-2-Clause
// Both public headers are C++, on their own and together, and the library links.
#include <mrc/client.h>
#include <mrc/ring_abi.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

int main()
{
	mrc_attach_options options{};
	mrc_client *client = nullptr;
	int r;

	options.socket_path = "/nonexistent/mrcd.sock";
	r = mrc_attach(&options, &client);
	if (r != -ENOENT || std::strlen(mrc_last_error(nullptr)) == 0) {
		std::fprintf(stderr, "attach: %d, %s\n", r, mrc_last_error(nullptr));
		return 1;
	}
	mrc_detach(client);
	return std::strcmp(mrc_level_name(MRC_LEVEL_VISIBLE), "visible") ? 1 : 0;
}
