/* SPDX-License-Identifier: Apache-2.0 */
/* `fusee ctl`: sends commands to a running agent. */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "console/options.h"

extern const struct cli_command ctl_command;
int cmd_ctl(int argc, char **argv);
#endif
