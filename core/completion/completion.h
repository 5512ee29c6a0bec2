/* SPDX-License-Identifier: Apache-2.0 */
/* `fusee completion`: completion of commands, options and names in shells. */
#ifndef COMPLETION_COMPLETION_H
#define COMPLETION_COMPLETION_H

#include "console/options.h"

extern const struct cli_command completion_command;
/* Prints the completion of these commands, n of them, for a shell. */
int completion(const struct cli_command *const *all, uint32_t n, int argc, char **argv);
#endif
