// Package fit makes a pipeline model from a trace: what each partition did and held (the pool), the
// contention law of the stages, and the law of RSS. It fits nothing that the trace does not show,
// says how well each law explains the recording, and what the trace cannot support.
//
// Terms. A service is one stage of one partition. Its solo time is how long it would take alone on
// the machine: the law says at what rate it went on at each moment, given what ran beside it, and
// the solo time is the integral of that rate. A law is good when solo times of one stage agree
// although the services ran in different company.
package fit
