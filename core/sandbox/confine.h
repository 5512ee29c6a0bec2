/* SPDX-License-Identifier: Apache-2.0 */
/* What the worker, the opener and the fetcher give up alike, each before its filter of system
 * calls. */
#ifndef SANDBOX_CONFINE_H
#define SANDBOX_CONFINE_H

#include <stdint.h>

/* Drops all capabilities but those of the mask, by the bits of capabilities(7). 0 or -errno. */
int confine_capabilities(uint64_t kept);
/* No core file, 64 descriptors, files of so many bytes, so much memory of its own (which sanitizers
 * need more of: not limited there). 0 or -errno. */
int confine_limits(uint64_t file_bytes, uint64_t memory_bytes);
#endif
