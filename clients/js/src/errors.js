const prefix = "urn:lineage:problem:";

/** An answer of the server that says what went wrong: the members of its problem details (RFC 9457). */
export class LineageError extends Error {
  constructor(problem) {
    super(problem.detail ? `${problem.title}: ${problem.detail}` : String(problem.title));
    this.name = "LineageError";
    const { type, title, status, detail, ...members } = problem;
    this.type = typeof type === "string" && type.startsWith(prefix) ? type.slice(prefix.length) : String(type);
    this.title = title;
    this.status = status;
    this.detail = detail;
    this.members = members;
  }

  /** For the problem `tip-moved`: the tip that the context has; "" for an empty history. */
  get tip() {
    return this.members.tip;
  }
}

/** No answer came: nobody listens, or the connection broke. */
export class ConnectionError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = "ConnectionError";
  }
}

/** Reports whether an error is a problem of one of these types. */
export function is(err, ...types) {
  return err instanceof LineageError && types.includes(err.type);
}
