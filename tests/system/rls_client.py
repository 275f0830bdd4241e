"""A client of weir's rate limit service with Google's libraries (python3-grpcio, python3-protobuf). It learns all messages from weir by
reflection, so no code is generated."""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from harness import PATIENCE

RLS = "envoy.service.ratelimit.v3."
SHOULD_RATE_LIMIT = f"/{RLS}RateLimitService/ShouldRateLimit"
HEALTH = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
REFLECTION_ALPHA = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
OK, OVER_LIMIT = 1, 2  # RateLimitResponse.Code
SECOND, MINUTE, HOUR, DAY = 1, 2, 3, 4  # RateLimitResponse.RateLimit.Unit


def text_field(number, text):
    """Returns a field of a message that contains a short text."""
    octets = text.encode() if isinstance(text, str) else text
    assert len(octets) < 128 and number < 16
    return bytes([number << 3 | 2, len(octets)]) + octets


def field(message, number):
    """Returns the octets of all fields with this number, all of which must be texts or messages."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value, at

    found, at = [], 0
    while at < len(message):
        tag, at = varint(at)
        assert tag & 7 == 2, tag
        size, at = varint(at)
        if tag >> 3 == number:
            found.append(message[at:at + size])
        at += size
    return found


class Messages:
    """The classes of all messages of weir's services, as reflection describes them."""

    def __init__(self, channel, metadata=(), method=REFLECTION):
        asks = [text_field(7, "")]
        services = [field(service, 1)[0].decode() for service in field(field(self.exchange(channel, asks, metadata, method)[0], 6)[0], 1)]
        self.services, self.pool, files = services, descriptor_pool.DescriptorPool(), {}
        answers = self.exchange(channel, [text_field(4, service) for service in services], metadata, method)
        for answer in answers:
            for octets in field(field(answer, 4)[0], 1):
                file = descriptor_pb2.FileDescriptorProto.FromString(octets)
                files[file.name] = file
        self.files, self.factory = files, message_factory.MessageFactory(self.pool)
        for file in files.values():
            self.add(file)

    def add(self, file):
        for name in file.dependency:
            self.add(self.files[name])
        self.pool.Add(file)

    @staticmethod
    def exchange(channel, asks, metadata, method):
        return list(channel.stream_stream(method)(iter(asks), timeout=PATIENCE, metadata=metadata))

    def __getitem__(self, name):
        return self.factory.GetPrototype(self.pool.FindMessageTypeByName(name))


def rls_request(messages, domain, *descriptors, hits=0):
    """Returns a RateLimitRequest. A descriptor is a dictionary; its member `hits`, if any, is the hits_addend of the descriptor."""
    request = messages[RLS + "RateLimitRequest"](domain=domain, hits_addend=hits)
    for entries in descriptors:
        descriptor = request.descriptors.add()
        for key, value in entries.items():
            if key == "hits":
                descriptor.hits_addend.value = value
            else:
                descriptor.entries.add(key=key, value=value)
    return request


class RlsClient:
    """A channel to weir. `messages`: those of another client of the same service."""

    def __init__(self, channel, messages=None, metadata=()):
        self.channel, self.metadata = channel, metadata
        self.messages = messages or Messages(channel, metadata)
        self.answer_class = self.messages[RLS + "RateLimitResponse"]
        self.call_octets = channel.unary_unary(SHOULD_RATE_LIMIT)

    def ask(self, domain, *descriptors, hits=0, timeout=PATIENCE, metadata=None):
        """Calls ShouldRateLimit. Returns the RateLimitResponse."""
        request = rls_request(self.messages, domain, *descriptors, hits=hits)
        return self.send(request.SerializeToString(), timeout, metadata)

    def send(self, octets, timeout=PATIENCE, metadata=None):
        answer = self.call_octets(octets, timeout=timeout, metadata=self.metadata if metadata is None else metadata)
        return self.answer_class.FromString(answer)

    def code(self, domain, *descriptors, **options):
        return self.ask(domain, *descriptors, **options).overall_code

    def health(self, service="", timeout=PATIENCE):
        """Returns the status of a HealthCheckResponse."""
        call = self.channel.unary_unary(HEALTH)
        request = self.messages["grpc.health.v1.HealthCheckRequest"](service=service)
        answer = call(request.SerializeToString(), timeout=timeout, metadata=self.metadata)
        return self.messages["grpc.health.v1.HealthCheckResponse"].FromString(answer).status


def fields_of(answer):
    """Returns the fields that the answer adds for clients."""
    return {header.key.lower(): header.value for header in answer.response_headers_to_add}


def insecure(target):
    return grpc.insecure_channel(target, [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
