/* SPDX-License-Identifier: Apache-2.0 */
/* A function's enum fusee_frame_flags in a pprof file, which has no field for them: at the end of
 * its system name, "name [async,hidden]". */
#ifndef PROFILE_PPROF_FLAGS_H
#define PROFILE_PPROF_FLAGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define PPROF_FLAGS_MOST 24u /* bytes that pprof_flags_write() appends at most */

void pprof_flags_write(struct buf *, uint32_t flags); /* nothing for 0 */
/* The flags at the end of a system name of *len bytes, without which *len then is. */
uint32_t pprof_flags_read(const char *name, size_t *len);
#endif
