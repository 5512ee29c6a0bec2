/* SPDX-License-Identifier: Apache-2.0 */
/* The commands: each is a file core/cli/NAME.c, or has a room of its own. Exit codes are those of
 * sysexits.h. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "console/options.h"

/* The file that record writes and report reads if none is named. */
#define CLI_DEFAULT_PROFILE "fusee.pb.gz"

int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_plugins(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_ui(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_worker(int argc, char **argv);
int cmd_opener(int argc, char **argv);
int cmd_fetcher(int argc, char **argv);

extern const struct cli_command record_command, report_command, check_command, plugins_command,
	new_command, run_command, top_command, query_command, push_command, ui_command;
#endif
