package structure

// SetBefore reports whether the value was set before a span of its context was added: a
// context that starts at the span inherits it, unless a later value was also set before the
// span.
//
// It does not look up the run of Seen, which may have been collected.
func (v *Value) SetBefore(span SpanRef, runs RunLookup) (bool, error) {
	switch v.Seen {
	case SpanRef{}:
		return true, nil
	case span, CollectedSpan:
		return false, nil
	}
	for !span.IsZero() && span.Run != v.Seen.Run {
		run, _, err := locate(span, runs)
		if err != nil {
			return false, err
		}
		if !run.Parent.IsZero() {
			if _, _, err = parentRun(run, runs); err != nil {
				return false, err
			}
		}
		span = run.Parent
	}
	return v.Seen.Seq <= span.Seq, nil
}

// InheritedAt returns the position as of which a context reads the values of its parent,
// given the position as of which its own are read: the base of the context, or the position
// if that is before the base.
func InheritedAt(at, base SpanRef, runs RunLookup) (SpanRef, error) {
	before, err := Position(at, runs)
	if err != nil {
		return SpanRef{}, err
	}
	start, err := Position(base, runs)
	if err != nil || before >= start {
		return base, err
	}
	ok, err := IsAncestor(at, base, runs)
	if err != nil || !ok {
		return base, err
	}
	return at, nil
}
