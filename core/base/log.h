/* SPDX-License-Identifier: Apache-2.0 */
/* The log: lines on standard error, each "fusee: ...". [any thread] A function either logs an error
 * or returns it, never both. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/* The values are those of syslog(3). */
enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_INFO = 6, LOG_DEBUG = 7 };

/* Messages of this level and below are printed. The default is LOG_DEBUG with FUSEE_DEBUG in the
 * environment, else LOG_INFO. */
void log_set_level(int level);
int log_level(void);

/* The two below are set before other threads start. */

/* The beginning of each line; default "fusee: ". Borrowed. */
void log_set_prefix(const char *prefix);
/* A function that is called before each line, to erase a progress line. NULL: none. */
void log_set_before(void (*before)(void));

/* Names in a message may have any bytes: those that change the state of a terminal become '?'.
 * Users and passwords of URLs are hidden. */
void log_at(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#endif
