"""A scripted provider of language models. It answers in the documented forms of OpenAI (chat completions and responses),
Anthropic (messages) and Ollama (generate and chat), streamed and not. The text of a request names the tokens that it uses:
"INPUT OUTPUT"."""

import collections
import json
import threading

from harness import answer

PIECES = (1, 7, 40, 200, 1000)  # octets of the chunks of a stream, in turn


def text_of(asked):
    """Returns the text of the request's last message or of its prompt."""
    last = (asked.get("messages") or [{}])[-1].get("content") or asked.get("input") or asked.get("prompt")
    return last if isinstance(last, str) else last[-1]["text"]


def events(*data, named=False):
    """Returns server-sent events. `named`: each has a field `event` with the type of its data."""
    return "".join((f"event: {each['type']}\n" if named else "") + f"data: {json.dumps(each)}\n\n" for each in data)


def words(count):
    return [f"word{number} " for number in range(min(count, 20))]


def chat(asked, spent_in, spent_out):
    usage = {"prompt_tokens": spent_in, "completion_tokens": spent_out, "total_tokens": spent_in + spent_out}
    common = {"id": "chatcmpl-1", "created": 1700000000, "model": asked["model"]}
    if not asked.get("stream"):
        message = {"role": "assistant", "content": "".join(words(spent_out)), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
    told = (asked.get("stream_options") or {}).get("include_usage")
    common |= {"object": "chat.completion.chunk", **({"usage": None} if told else {})}
    deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in words(spent_out))]
    parts = [{**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    parts.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if told:
        parts.append({**common, "choices": [], "usage": usage})
    return events(*parts) + "data: [DONE]\n\n"


def responses(asked, spent_in, spent_out):
    content = {"type": "output_text", "text": "".join(words(spent_out)), "annotations": []}
    output = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [content]}
    common = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": asked["model"], "error": None}
    begun = {**common, "status": "in_progress", "output": [], "usage": None}
    usage = {"input_tokens": spent_in, "output_tokens": spent_out, "total_tokens": spent_in + spent_out}
    done = {**common, "status": "completed", "output": [output], "usage": usage}
    if not asked.get("stream"):
        return done
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    deltas = [{"type": "response.output_text.delta", **place, "delta": word} for word in words(spent_out)]
    begins = [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun},
              {"type": "response.output_item.added", "output_index": 0, "item": {**output, "status": "in_progress", "content": []}},
              {"type": "response.content_part.added", **place, "part": {**content, "text": ""}}]
    ends = [{"type": "response.output_text.done", **place, "text": content["text"]},
            {"type": "response.content_part.done", **place, "part": content},
            {"type": "response.output_item.done", "output_index": 0, "item": output}, {"type": "response.completed", "response": done}]
    parts = [{**part, "sequence_number": number} for number, part in enumerate(begins + deltas + ends)]
    return events(*parts, named=True)


def messages(asked, spent_in, spent_out):
    caches = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    common = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None}
    if not asked.get("stream"):
        content = [{"type": "text", "text": "".join(words(spent_out))}]
        usage = {"input_tokens": spent_in, **caches, "output_tokens": spent_out}
        return {**common, "content": content, "stop_reason": "end_turn", "usage": usage}
    begun = {**common, "content": [], "stop_reason": None, "usage": {"input_tokens": spent_in, **caches, "output_tokens": 1}}
    deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in words(spent_out)]
    return events({"type": "message_start", "message": begun},
                  {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                  {"type": "ping"}, *deltas, {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": spent_out}},
                  {"type": "message_stop"}, named=True)


def ollama(asked, spent_in, spent_out):
    parts = [{"model": asked["model"], "response": word, "done": False} for word in words(spent_out)]
    last = {"model": asked["model"], "response": "", "done": True, "done_reason": "stop", "total_duration": 5589157167,
            "prompt_eval_count": spent_in, "eval_count": spent_out}
    return last if asked.get("stream") is False else "".join(json.dumps(part) + "\n" for part in [*parts, last])


FORMS = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages, "/api/generate": ollama, "/api/chat": ollama}


class LanguageModel:
    """The `reply` of an Upstream. `told`: the tokens of all answers so far, by path. `before_end`: a function that is called with the
    Exchange before the last octets of each stream are sent."""

    def __init__(self, before_end=lambda exchange: None):
        self.told, self.lock, self.before_end = collections.Counter(), threading.Lock(), before_end

    def __call__(self, exchange):
        asked = json.loads(exchange.read_body())
        spent = [int(number) for number in text_of(asked).split()]
        said = FORMS[exchange.target](asked, *spent)
        with self.lock:
            self.told[exchange.target] += sum(spent)
        if isinstance(said, dict):
            return exchange.send(answer(json.dumps(said).encode(), headers="Content-Type: application/json\r\n"))
        kind = "application/x-ndjson" if exchange.target.startswith("/api/") else "text/event-stream; charset=utf-8"
        exchange.send(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        self.stream(exchange, said.encode())

    def stream(self, exchange, text):
        number = 0
        while text:
            piece, text = text[:PIECES[number % len(PIECES)]], text[PIECES[number % len(PIECES)]:]
            number += 1
            if not text:
                self.before_end(exchange)
            exchange.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        exchange.send(b"0\r\n\r\n")
