/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF programs that are loaded in the running kernel, by their ids; what all programs share. */
#ifndef BPF_PROGRAMS_H
#define BPF_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets *next to the lowest program id above `id`. 0; -ENOENT: there is none; or -errno, -EPERM
 * without CAP_SYS_ADMIN. Thread-safe. */
int programs_next_id(uint32_t id, uint32_t *next);
/* Programs see pids of the first pid namespace: are these the pids that this process sees? */
bool programs_see_our_pids(void);
#endif
