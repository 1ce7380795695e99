//! The data sequence signal of MPTCP (RFC 8684 §3.3, subtype 2): Data ACK, mapping, DATA_FIN.

use restp_base::machine::Head;

/// Bytes of a DSS with numbers of 64 bits and no check sum, in whole words: what each segment with payload carries.
pub(crate) const DSS_BYTES: usize = 28;

/// Subtype, in the upper four bits of the third byte (RFC 8684 §7.2).
pub(super) const SUBTYPE: u8 = 0x20;
/// Bits (RFC 8684 §3.3, figure 9).
const DATA_ACK: u8 = 0x01;
const LONG_ACK: u8 = 0x02;
const MAPPING: u8 = 0x04;
const LONG_NUMBER: u8 = 0x08;
const DATA_FIN: u8 = 0x10;

/// A number of the connection as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The low 32 bits.
    Short(u32),
    /// All of it.
    Long(u64),
}

/// Which bytes of the connection some bytes of the subflow are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// First byte, in the connection.
    pub data: Number,
    /// First byte, in the subflow; the first one after the SYN is 1. 0: no byte, only the DATA_FIN.
    pub subflow: u32,
    /// Bytes, the DATA_FIN included.
    pub length: u16,
}

/// Data sequence signal: acknowledgement, mapping, end. Check sums are not asked for; one that is there is ignored
/// (RFC 8684 §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// Every byte of the connection below this one has arrived.
    pub ack: Option<Number>,
    /// What the payload is.
    pub mapping: Option<Mapped>,
    /// The last number of the mapping is the end of the data.
    pub fin: bool,
}

impl Number {
    fn bytes(self) -> usize {
        match self {
            Number::Short(_) => 4,
            Number::Long(_) => 8,
        }
    }
    fn emit(self, out: &mut Head) {
        match self {
            Number::Short(number) => out.extend_from_slice(&number.to_be_bytes()),
            Number::Long(number) => out.extend_from_slice(&number.to_be_bytes()),
        }
    }
    fn take(rest: &mut &[u8], long: bool) -> Option<Self> {
        if long {
            take(rest).map(|bytes| Number::Long(u64::from_be_bytes(bytes)))
        } else {
            take(rest).map(|bytes| Number::Short(u32::from_be_bytes(bytes)))
        }
    }
}

impl Dss {
    /// Reads what stands behind the subtype.
    pub(super) fn parse(rest: &[u8]) -> Option<Self> {
        let (&flags, mut rest) = rest.split_first()?;
        let has = |bit: u8| flags & bit != 0;
        let mut dss = Dss {
            fin: has(DATA_FIN),
            ..Dss::default()
        };
        if has(DATA_ACK) {
            dss.ack = Some(Number::take(&mut rest, has(LONG_ACK))?);
        }
        if has(MAPPING) {
            dss.mapping = Some(Mapped {
                data: Number::take(&mut rest, has(LONG_NUMBER))?,
                subflow: u32::from_be_bytes(take(&mut rest)?),
                length: u16::from_be_bytes(take(&mut rest)?),
            });
        }
        let checksum = dss.mapping.is_some() && rest.len() == 2;
        (rest.is_empty() || checksum).then_some(dss)
    }

    /// Bytes of the option, without padding.
    pub(super) fn bytes(&self) -> usize {
        let ack = self.ack.map_or(0, Number::bytes);
        4 + ack + self.mapping.map_or(0, |mapped| mapped.data.bytes() + 6)
    }

    /// Appends subtype, flags and fields.
    pub(super) fn emit(&self, out: &mut Head) {
        let mut flags = if self.fin { DATA_FIN } else { 0 };
        flags |= match self.ack {
            None => 0,
            Some(Number::Short(_)) => DATA_ACK,
            Some(Number::Long(_)) => DATA_ACK | LONG_ACK,
        };
        flags |= match self.mapping.map(|mapped| mapped.data) {
            None => 0,
            Some(Number::Short(_)) => MAPPING,
            Some(Number::Long(_)) => MAPPING | LONG_NUMBER,
        };
        out.extend_from_slice(&[SUBTYPE, flags]);
        if let Some(ack) = self.ack {
            ack.emit(out);
        }
        if let Some(mapped) = self.mapping {
            mapped.data.emit(out);
            out.extend_from_slice(&mapped.subflow.to_be_bytes());
            out.extend_from_slice(&mapped.length.to_be_bytes());
        }
    }
}

/// The next `N` bytes.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subflow::options::Multipath;
    use crate::tcp::options::padded;

    #[track_caller]
    fn both_ways(dss: Dss, expected: &[u8]) {
        let option = Multipath::Data(dss);
        let mut out = Head::new();
        option.emit(&mut out);
        assert_eq!((&out[..], option.bytes()), (expected, expected.len()));
        assert_eq!(Multipath::parse(&expected[2..]), Some(Some(option)));
    }

    /// RFC 8684 §3.3, figure 9: flags F m M a A, then Data ACK, DSN, subflow number, length.
    #[test]
    fn data_sequence_signal_byte_by_byte() {
        let mut dss = Dss {
            ack: Some(Number::Long(0x0102_0304_0506_0708)),
            ..Dss::default()
        };
        let ack = [30, 12, 0x20, 0x03, 1, 2, 3, 4, 5, 6, 7, 8];
        both_ways(dss, &ack);
        dss.mapping = Some(Mapped {
            data: Number::Long(0x1112_1314_1516_1718),
            subflow: 1401,
            length: 1400,
        });
        let mapping = [
            0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 5, 0x79, 5, 0x78,
        ];
        let all = [&[30, 26, 0x20, 0x0f], &ack[4..], &mapping].concat();
        both_ways(dss, &all);
        assert_eq!(padded(all.len()), DSS_BYTES);
        let summed = [&all[2..], &[0x12, 0x34]].concat();
        assert_eq!(
            Multipath::parse(&summed),
            Some(Some(Multipath::Data(dss))),
            "a check sum nobody asked for is ignored"
        );
        let end = Dss {
            ack: Some(Number::Short(0x0506_0708)),
            mapping: Some(Mapped {
                data: Number::Short(0x1516_1718),
                subflow: 0,
                length: 1,
            }),
            fin: true,
        };
        let bytes = [
            30, 18, 0x20, 0x15, 5, 6, 7, 8, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 0, 0, 1,
        ];
        both_ways(end, &bytes);
    }
}
