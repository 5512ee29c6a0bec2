/* SPDX-License-Identifier: Apache-2.0 */
/* The BPF programs that are loaded in the running kernel, by their ids; what all programs share. */
#ifndef PROGRAMS_PROGRAMS_H
#define PROGRAMS_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_object;

/* Sets *next to the lowest program id above `id`. 0; -ENOENT: there is none; or -errno, -EPERM
 * without CAP_SYS_ADMIN. Thread-safe. */
int programs_next_id(uint32_t id, uint32_t *next);
/* Programs see pids of the first pid namespace: are these the pids that this process sees? */
bool programs_see_our_pids(void);
/* May programs of perf events use hash maps that allocate an entry when it is added (since Linux
 * 6.1), and not all of them when they are made? */
bool programs_may_allocate(void);
/* Opens an object of len bytes, which may be freed after that, whose programs unwind no stacks: the
 * maps of <fusee/unwinder.bpf.h>, a slab among them, are not made for it. 0 or -errno. */
int programs_open(struct bpf_object **ret, const char *name, const void *bytes, size_t len);
/* Maps the memory of an array, which programs share. NULL: it cannot be mapped. */
void *programs_map_memory(int map, size_t len);
#endif
