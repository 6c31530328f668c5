package engine

// New returns a context fragment with data of any supported type.
func New(name string, data any) Fragment {
	return Fragment{Name: name, Data: data, Type: TypeFragment}
}

// F returns a context fragment with nested fragments.
func F(name string, children ...Fragment) Fragment { return New(name, children) }

// Role describes the role of the model.
func Role(text string) Fragment { return New("role", text) }

// Hint gives one rule of behaviour.
func Hint(text string) Fragment { return New("hint", text) }

// Term defines a word of the domain.
func Term(name, definition string) Fragment {
	return New("term", Object{{"name", name}, {"definition", definition}})
}

// Explain describes a concept.
func Explain(concept, explanation string) Fragment {
	return New("explain", Object{{"concept", concept}, {"explanation", explanation}})
}

// Example shows a question with the expected answer.
func Example(question, answer string) Fragment {
	return New("example", Object{{"question", question}, {"answer", answer}})
}

// Guardrail states a limit and, unless reason is empty, its reason.
func Guardrail(rule, reason string) Fragment {
	data := Object{{"rule", rule}}
	if reason != "" {
		data = append(data, Field{"reason", reason})
	}
	return New("guardrail", data)
}

// Workflow lists the steps of a task in order.
func Workflow(task string, steps ...string) Fragment {
	return New("workflow", Object{{"task", task}, {"steps", steps}})
}
