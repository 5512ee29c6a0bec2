/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/labeler.h - a labeler: a plugin that says which request a thread works on when it is
 * sampled. Its step is described in <fusee/labeler.bpf.h>.
 *
 * inspect() finds in a file where threads keep what they work on, and makes a table of it. mapped()
 * is called for each place of such a file in a process; it sets the words of the process with
 * host->process_slab(), and the step is called for samples of the process from then on. The other
 * callbacks of an unwinder may be NULL, as may its native step.
 *
 * A set has at most four labelers. Of those that have set words of a process, the first by `order`
 * labels it.
 */
#ifndef FUSEE_LABELER_H
#define FUSEE_LABELER_H

#include <fusee/plugin.h>

/* Of enum fusee_unwinder_flags: ops->bpf is a labeler's step, and steps no frames. */
#define FUSEE_UNWINDER_LABELS 8u

#endif
