/* SPDX-License-Identifier: Apache-2.0 */
/* `fusee doctor`: what works on this machine. */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include "console/options.h"

extern const struct cli_command doctor_command;
int cmd_doctor(int argc, char **argv);
#endif
