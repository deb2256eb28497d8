/* The threads that a subscription costs besides the writers. The real profiler has 18 of them; here they only wait, so that whoever counts
 * threads, or forks, meets them. (Its 117 MB of memory are not imitated.) */
#ifndef OPSTREAM_SIM_CREW_H
#define OPSTREAM_SIM_CREW_H

/* Starts them, as many as can be had; they inherit the caller's signal mask. */
void crew_start(void);

/* Ends and joins them. */
void crew_stop(void);

#endif
