/* SPDX-License-Identifier: Apache-2.0 */
/* `fusee dump`: the stacks of all threads now. */
#ifndef DUMP_DUMP_H
#define DUMP_DUMP_H

#include "console/options.h"

extern const struct cli_command dump_command;
int cmd_dump(int argc, char **argv);
#endif
