// Package memory explains the bytes of a trace: lifetimes, live bytes, what held them at the peak,
// how far RSS departs from them, and whether the ledger can be believed.
//
// Terms. The ledger is the sum of the recorded buffers. Live bytes are capacities (what was
// reserved), resident bytes what was touched; RSS is compared with resident. Only top-level buffers
// count in sums; a buffer cut from a pool is shown under its own class, and the pool for the rest.
// The remainder is RSS minus the resident ledger of the same process. A place is where a partition
// waits or works (Place); a buffer is where its owner is. The peak is taken from the first job's
// request on; in a trace without a job, over all of it.
//
// Walk goes through a trace once, in its order, with memory for the live buffers and the partitions
// only.
package memory
