// Package journal is the crash-safe event log: mmap'd, preallocated segments of self-checking 64-byte
// records.
//
// A record is acknowledged when Append has returned; from then on it survives SIGKILL and the OOM
// killer, not power loss. Records that are lost (no segment to be had, a full disk) are counted, and
// the count is in the journal. docs/format.md shows the bytes.
//
// Terms. A journal is what one source, usually a process, writes: a folder of segments, which are files
// of one size, reserved on disk and mapped before they are written to. A writer claims a block of 64
// records from the current segment and fills it in order; there are more writers than CPUs, so that a
// goroutine always finds a free one. A group is a record with its extension records, always in one block.
// A word is a string by number; its definition is in the journal before its first use.
//
// How an event gets in: 1. take a free writer, first the one of the calling goroutine; 2. if its block is
// full, claim another from the segment, or change to the spare segment, which the background keeps ready;
// 3. if none can be had, count a loss; 4. write the extension, the record's words, and word 0 with the
// check last; 5. give the writer back: acknowledged.
//
// How it gets out: a Reader takes each block in turn, and each record whose check is right for its place. A
// word 0 of zero ends the block. What a kill tore, or damage changed, fails its check and is counted.
package journal
