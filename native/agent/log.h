/* log.h: the file that OPSTREAM_LOG names: one line a call, with time and pid. It is opened for each line, as the application may close
 * what isn't its own; only a regular file or a terminal is written to. Without the variable, or when it can't be, nothing happens. Any
 * thread; keeps errno; never blocks, never raises a signal. */
#ifndef OPSTREAM_AGENT_LOG_H
#define OPSTREAM_AGENT_LOG_H

void agent_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
