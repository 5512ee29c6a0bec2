/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the separate debug file of a binary: by build id, then by .gnu_debuglink. Runs in the agent, which opens
 * files but never looks into them: that the file belongs to the binary is checked in the worker.
 */
#ifndef SYMBOLS_DEBUGFILE_H
#define SYMBOLS_DEBUGFILE_H

#include <stdint.h>

/* root: "" or "/proc/PID/root". path: of the binary. build_id: raw bytes, len 0: none. debuglink: "" none.
 * A regular file's descriptor, or -ENOENT. */
int debugfile_open(const char *root, const char *path, const uint8_t *build_id, uint32_t len, const char *debuglink);
/* The dwz file that a debug file names, by its build id or its name: likewise. */
int debugfile_open_alt(const char *root, const char *name, const uint8_t *build_id, uint32_t len);
#endif
