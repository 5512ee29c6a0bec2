/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of plugins, for commands that print its contents. */
#ifndef CONSOLE_PLUGIN_LIST_H
#define CONSOLE_PLUGIN_LIST_H

#include "plugin/plugin.h"

/* Opens the default folder; refused plugins are not logged. 0, or an exit code after one error was
 * logged. */
int plugin_list_open(struct plugin_folder *);
/* The width of the terminal on stdout, at most 100; 80 if it is no terminal. */
unsigned int plugin_list_columns(void);
#endif
