/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the separate debug file of a binary: by build ID, then by .gnu_debuglink. Runs in the
 * opener, which opens files but does not parse them: the worker checks that a file belongs to the
 * binary. All functions resolve paths below `root` with openat2(RESOLVE_IN_ROOT) to an O_PATH
 * descriptor, check that the file is regular and that everybody may read it, and then open it. They
 * can block for as long as its file system does. [any thread]
 */
#ifndef SYMBOLS_DEBUGFILE_H
#define SYMBOLS_DEBUGFILE_H

#include <stdint.h>

/*
 * root: "" or "/proc/PID/root". path: of the binary, below root. build_id: len raw bytes, 0: none.
 * debuglink: "" or NULL: none; ignored if it contains '/'. Tries
 * /usr/lib/debug/.build-id/xx/yy.debug, then the link beside the binary, in .debug there, and below
 * /usr/lib/debug. Returns a descriptor; -ENOENT; -errno: root cannot be opened.
 */
int debugfile_open(const char *root, const char *path, const uint8_t *build_id, uint32_t len,
		   const char *debuglink);
/* The dwz file that .gnu_debugaltlink names: by build ID; else by the name if that is an absolute
 * path to any ELF file below root, without links, in folders that everybody may search; else by the
 * name's last part in /usr/lib/debug/.dwz. */
int debugfile_open_alt(const char *root, const char *name, const uint8_t *build_id, uint32_t len);
#endif
