/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrcd_log.h"

/* Who has it, as the file says: its digits, for whoever owns the directory may have written it. */
static void say_who(int fd, const char *dir)
{
	char pid[24] = "";
	ssize_t pid_bytes = read(fd, pid, sizeof(pid) - 1);

	pid[pid_bytes > 0 ? strspn(pid, "0123456789") : 0] = '\0';
	mrcd_err("another mrcd%s%s runs in %s; a second one needs its own runtime-dir",
		 pid[0] != '\0' ? ", process " : "", pid, dir);
}

static int lock_hold(int fd, const char *path, const char *dir)
{
	struct stat found;
	int r;

	/* Whoever owns the directory could have made it another name of a file that is root's. */
	if (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode) || found.st_nlink != 1) {
		mrcd_err("lock file %s: is no file of its own; remove it", path);
		return -EPERM;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EBUSY : -errno;
		if (r == -EBUSY)
			say_who(fd, dir);
		else
			mrcd_err("lock file %s: cannot be locked: %s", path, strerror(-r));
		return r;
	}
	/* For people; the lock is what counts. */
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d\n", (int)getpid()) < 0)
		mrcd_warn("lock file %s: cannot be written: %s", path, strerror(errno));
	return 0;
}

int mrcd_lock_take(const char *dir, const struct mrcd_privilege_user *user, int *fd_out)
{
	bool is_made = mkdir(dir, 0755) == 0;
	char path[128];
	int fd, r;

	if (!is_made && errno != EEXIST) {
		r = -errno;
		mrcd_err("runtime-dir %s: cannot be made: %s", dir, strerror(-r));
		return r;
	}
	snprintf(path, sizeof(path), "%s/mrcd.lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		r = -errno;
		mrcd_err("lock file %s: cannot be opened: %s", path,
			 r == -ELOOP ? "it is a link; remove it" : strerror(-r));
		return r == -ELOOP ? -EPERM : r;
	}
	r = lock_hold(fd, path, dir);
	/* Whose sockets will be made in there. A directory that was there has its owner already. */
	if (r == 0 && user != NULL &&
	    ((is_made && lchown(dir, user->uid, user->gid) < 0) ||
	     fchown(fd, user->uid, user->gid) < 0)) {
		r = -errno;
		mrcd_err("runtime-dir %s: cannot be given to user %s: %s", dir, user->name,
			 strerror(-r));
	}
	if (r < 0) {
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}
