/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The first word of a sample of time off the CPU. */
#ifndef OFFCPU_STATE_H
#define OFFCPU_STATE_H

/* Why a thread was off its CPU. */
enum offcpu_state {
	OFFCPU_UNKNOWN,         /* the wait began before the recording */
	OFFCPU_SLEEPING,        /* until it is woken, or a signal comes */
	OFFCPU_UNINTERRUPTIBLE, /* as in I/O */
	OFFCPU_RUNNABLE,        /* other threads ran */
	OFFCPU_STOPPED,         /* by a signal or a debugger */
	OFFCPU_STATES
};
#endif
