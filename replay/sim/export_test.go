package sim

// BreakFreed makes partitions never give back what they hold until their last free, to see a
// deadlock.
func BreakFreed(s *Simulator) {
	for i := range s.prog.steps {
		if s.prog.steps[i].op == opFreed {
			s.prog.steps[i].op = opEnd
		}
	}
}

// BreakLocks makes partitions never give the model's locks back.
func BreakLocks(s *Simulator) {
	for i := range s.prog.steps {
		if s.prog.steps[i].op == opGiveLock {
			s.prog.steps[i].op = opEnd
		}
	}
}
