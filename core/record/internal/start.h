/* SPDX-License-Identifier: Apache-2.0 */
/* The begin of a recording: sampling is switched on, and the command goes on. */
#ifndef RECORD_START_H
#define RECORD_START_H

#include "record/session.h"

/* 0, or an exit code after an error was logged. */
int session_start(struct session *);
#endif
