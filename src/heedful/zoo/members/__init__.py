"""The members of the zoo by name."""

from collections.abc import Mapping

from heedful.errors import UnknownName
from heedful.zoo.member import Member
from heedful.zoo.members.acf import ACF
from heedful.zoo.members.bahdanau import BAHDANAU
from heedful.zoo.members.content import CONTENT
from heedful.zoo.members.d_attn import D_ATTN
from heedful.zoo.members.gram import GRAM
from heedful.zoo.members.hierarchical import HIERARCHICAL
from heedful.zoo.members.location_sensitive import LOCATION_BASED, LOCATION_SENSITIVE
from heedful.zoo.members.luong import (
    LUONG_CONCAT,
    LUONG_DOT,
    LUONG_GENERAL,
    LUONG_LOCAL_M,
    LUONG_LOCAL_P,
    LUONG_LOCATION,
)
from heedful.zoo.members.memory import MEMORY
from heedful.zoo.members.nested import NESTED
from heedful.zoo.members.pointer import POINTER
from heedful.zoo.members.self_attention import MULTI_HEAD, SELF_ATTENTION

MEMBERS: Mapping[str, Member] = {
    member.name: member
    for member in (
        BAHDANAU,
        LUONG_DOT,
        LUONG_GENERAL,
        LUONG_CONCAT,
        LUONG_LOCATION,
        LUONG_LOCAL_M,
        LUONG_LOCAL_P,
        CONTENT,
        SELF_ATTENTION,
        MULTI_HEAD,
        LOCATION_SENSITIVE,
        LOCATION_BASED,
        HIERARCHICAL,
        D_ATTN,
        NESTED,
        MEMORY,
        POINTER,
        ACF,
        GRAM,
    )
}


def find_member(name: str) -> Member:
    """A member by its name."""
    if name not in MEMBERS:
        raise UnknownName("member of the zoo", name, MEMBERS)
    return MEMBERS[name]
