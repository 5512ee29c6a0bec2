/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the separate debug file of a binary: by build id, then by .gnu_debuglink. Runs in the
 * agent, which opens files but never looks into them: that the file belongs to the binary is
 * checked in the worker.
 */
#ifndef SYMBOLS_DEBUGFILE_H
#define SYMBOLS_DEBUGFILE_H

#include <stdint.h>

/*
 * root: where paths begin, "" or "/proc/PID/root"; symbolic links stay below it. path: of the
 * binary there. build_id: raw bytes, len 0: none. debuglink: "" or NULL none. Looked for:
 * /usr/lib/debug/.build-id/xx/yy.debug, then the link beside the binary, in its .debug folder and
 * under /usr/lib/debug. A regular file's descriptor, or -ENOENT; -errno: root can't be opened. [any
 * thread]
 */
int debugfile_open(const char *root, const char *path, const uint8_t *build_id, uint32_t len,
		   const char *debuglink);
/* The dwz file that a debug file names in .gnu_debugaltlink, by its build id or its name: likewise.
 * A name that is not absolute is looked for in /usr/lib/debug/.dwz. */
int debugfile_open_alt(const char *root, const char *name, const uint8_t *build_id, uint32_t len);
#endif
