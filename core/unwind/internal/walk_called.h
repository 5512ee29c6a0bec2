/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of addresses without code: bpf/called.h. */
#ifndef UNWIND_WALK_CALLED_H
#define UNWIND_WALK_CALLED_H

#include <fusee/unwinder.bpf.h>

#include "unwind/walk_language.h"

/* pc is in no mapping. If it has no code, and a call led there, goes to the caller. */
bool walk_called(struct fusee_native *);
#endif
