/* SPDX-License-Identifier: Apache-2.0 */
/* Talk on stderr, each line "fusee: ...". [any thread] A function logs an error or returns it,
 * never both. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_INFO = 6, LOG_DEBUG = 7 };

/* What is printed: this level and below. Default LOG_INFO; FUSEE_DEBUG=1 in the environment:
 * LOG_DEBUG. */
void log_set_level(int level);
int log_level(void);
/* Printed before each line instead of "fusee: " (the worker's is "fusee worker: "). Not copied. */
void log_set_prefix(const char *prefix);
/* Called before a line is printed, so that a progress line can be taken away. NULL: nothing. */
void log_set_before(void (*before)(void));

void log_at(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#endif
