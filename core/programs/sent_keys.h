/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel knows to be emitted: bpf/language.h. */
#ifndef PROGRAMS_SENT_KEYS_H
#define PROGRAMS_SENT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

/* Steps that begin later emit anew what they emit of the processes that of() names. A key that a
 * step has emitted while this function ran may be forgotten, or not. 0 or -errno. */
int sent_keys_forget(struct bpf_object *, bool (*of)(void *arg, uint64_t process), void *arg);
#endif
