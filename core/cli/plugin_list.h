/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of plugins, for commands that look into it. */
#ifndef CLI_PLUGIN_LIST_H
#define CLI_PLUGIN_LIST_H

#include "plugin/plugin.h"

/* The default folder; what is refused in it is not logged. 0, or an exit code with one error
 * logged. */
int plugin_list_open(struct plugin_folder *);
/* Columns of the terminal on stdout; 80 where it is none. */
unsigned int plugin_list_columns(void);
#endif
