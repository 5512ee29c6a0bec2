/* SPDX-License-Identifier: Apache-2.0 */
/* The commands: one file each, core/cli/NAME.c. Exit codes are those of sysexits.h. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_plugins(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_worker(int argc, char **argv);
#endif
