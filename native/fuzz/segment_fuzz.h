/* segment_fuzz.h: what an input of the segment's fuzzer is: a number of patches (1 byte), the patches (offset: 2 bytes, value: 1 byte), and
 * a segment's bytes, zeros from the input's end on. The patches are what the publisher changes after the view has been opened and read
 * once. */
#ifndef OPSTREAM_SEGMENT_FUZZ_H
#define OPSTREAM_SEGMENT_FUZZ_H

#define FUZZ_SEGMENT_BYTES 40960u
#define FUZZ_PATCH_BYTES 3u

#endif
