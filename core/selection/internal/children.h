/* SPDX-License-Identifier: Apache-2.0 */
/* The children of selected processes that run already. */
#ifndef SELECTION_CHILDREN_H
#define SELECTION_CHILDREN_H

#include "selection/selection.h"

/* Adds the processes below those of the selection, of all generations. 0, or an exit code after an
 * error was logged. */
int selection_add_children(struct selection *);
#endif
