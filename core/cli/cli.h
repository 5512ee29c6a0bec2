/* SPDX-License-Identifier: Apache-2.0 */
/* The commands: one file each, core/cli/NAME.c. Exit codes are those of sysexits.h. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/options.h"

/* What record writes and report reads if no file is named. */
#define CLI_DEFAULT_PROFILE "fusee.pb.gz"

int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_plugins(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_worker(int argc, char **argv);
int cmd_opener(int argc, char **argv);
int cmd_fetcher(int argc, char **argv);

extern const struct cli_command record_command, report_command, check_command, plugins_command,
	doctor_command, new_command, run_command, top_command, dump_command, ctl_command,
	push_command, query_command, completion_command;

/* `fusee completion`: prints the completion of these commands, n of them, for a shell. */
int completion(const struct cli_command *const *all, uint32_t n, int argc, char **argv);
#endif
