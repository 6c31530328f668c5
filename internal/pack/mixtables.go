package pack

// Chances are mixed as logits, in 1/256, between -mostLogit and mostLogit. All of
// this is whole numbers: every machine must have the same tables.
const mostLogit = 2047

// chanceOf is the chance of a logit + 2048, in 1/65536.
var chanceOf = func() (t [4096]uint16) {
	at := [...]int{ // for each half from -8 to 8
		22, 36, 60, 99, 162, 267, 440, 720, 1179, 1921, 3108, 4971, 7812, 11955, 17625, 24743, 32768,
		40793, 47911, 53581, 57724, 60565, 62428, 63615, 64357, 64816, 65096, 65269, 65374, 65437, 65476, 65500, 65514,
	}
	for i := range t {
		k, w := i>>7, i&127
		t[i] = uint16((at[k]*(128-w) + at[k+1]*w) >> 7)
	}
	return t
}()

// logitOf is the inverse, for chances in 1/4096.
var logitOf = func() (t [4096]int16) {
	next := 0
	for logit := -mostLogit; logit <= mostLogit; logit++ {
		for ; next <= int(chanceOf[logit+2048])>>4; next++ {
			t[next] = int16(logit)
		}
	}
	for ; next < len(t); next++ {
		t[next] = mostLogit
	}
	return t
}()

// A history is what is remembered of the bits that followed a context: how many
// were zero and one, within bounds, and the last. Histories are numbered.
var nextHistory, firstChance = func() (next [2][256]uint8, first chances) {
	type history struct{ zeros, ones, last int }
	list, numbers := []history{{}}, map[history]int{{}: 0}
	bounds := [...]int{32, 20, 12, 8, 6, 5} // for the larger count, given the smaller
	allowed := func(a, b int) bool { return min(a, b) < len(bounds) && max(a, b) <= bounds[min(a, b)] }
	after := func(h history, bit int) history {
		same, other := &h.zeros, &h.ones
		if bit == 1 {
			same, other = other, same
		}
		if *other > 2 { // what is old counts less
			*other = min(*other-*other/8-1, 6)
		}
		if *same++; !allowed(*same, *other) {
			*same--
		}
		for !allowed(*same, *other) {
			*other--
		}
		if h.last = bit; *other == 0 {
			h.last = 0
		}
		return h
	}
	for i := 0; i < len(list); i++ {
		for bit := range next {
			h := after(list[i], bit)
			if _, ok := numbers[h]; !ok {
				numbers[h] = len(list)
				list = append(list, h)
			}
			next[bit][i] = uint8(numbers[h])
		}
	}
	for i, h := range list {
		first[i] = uint16((10*h.ones + 4) << 16 / (10*(h.zeros+h.ones) + 8))
	}
	return next, first
}()

// chances are those of a bit to be one, in 1/65536, learned for each history.
type chances [256]uint16

// learned returns a chance after one more bit.
func learned(v uint16, bit int) uint16 {
	return v + uint16((bit<<16-bit-int(v))>>6)
}
